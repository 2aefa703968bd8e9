{{/* Labels of an object: (list $ "component"). They may change with a release, so no selector has them all. */}}
{{- define "cta-group.labels" -}}
{{- $root := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
{{ include "cta-group.lastingLabels" . }}
{{- end }}

{{/* Those that no version of the chart changes, for pods that a change would replace: (list $ "component"). */}}
{{- define "cta-group.lastingLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
app.kubernetes.io/part-of: cta-group
{{ include "cta-group.selectorLabels" . }}
{{- with $root.Values.extraLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of selectors: (list $ "component"). Frozen: a DaemonSet's selector cannot be changed. */}}
{{- define "cta-group.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "cta-group.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}
