{{/*
Expressions of CEL that more than one object needs. `object` is the pod. A quantity of zero asks for nothing.
*/}}

{{/* How many groups a container asks for: (list $ "variable of the container"). A quantity. */}}
{{- define "cta-group.cel.groups" -}}
{{- $resource := (index . 0).Values.resourceName -}}
quantity({{ index . 1 }}.?resources.?limits[?'{{ $resource }}'].orValue('0'))
{{- end }}

{{/* Whether a container asks: (list $ "variable of the container"). */}}
{{- define "cta-group.cel.asks" -}}
sign({{ include "cta-group.cel.groups" . }}) > 0
{{- end }}

{{- define "cta-group.cel.containers" -}}
(object.spec.containers + object.spec.?initContainers.orValue([]))
{{- end }}

{{/* Whether some container of the pod asks. */}}
{{- define "cta-group.cel.podAsks" -}}
{{ include "cta-group.cel.containers" . }}.exists(c, {{ include "cta-group.cel.asks" (list . "c") }})
{{- end }}

{{/* Namespaces that admission looks at. */}}
{{- define "cta-group.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- append .Values.admission.excludedNamespaces .Release.Namespace | uniq | toYaml | nindent 6 }}
{{- end }}

{{/* Metadata of a policy or of its binding: (list $ "policy"). */}}
{{- define "cta-group.policyMetadata" -}}
name: {{ include "cta-group.clusterName" (index . 0) }}-{{ index . 1 }}
labels:
  {{- include "cta-group.labels" (list (index . 0) "policies") | nindent 2 }}
{{- end }}

{{/* The binding of a policy about pods: (list $ "policy"). */}}
{{- define "cta-group.podPolicyBinding" -}}
{{- $root := index . 0 -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  {{- include "cta-group.policyMetadata" . | nindent 2 }}
spec:
  policyName: {{ include "cta-group.clusterName" $root }}-{{ index . 1 }}
  validationActions:
    {{- toYaml $root.Values.policies.validationActions | nindent 4 }}
  matchResources:
    namespaceSelector:
      {{- include "cta-group.namespaceSelector" $root | nindent 6 }}
{{- end }}
