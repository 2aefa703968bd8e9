{{/* Annotations of an object that Helm makes after the release is deleted, and deletes itself: "weight". */}}
{{- define "cta-group.afterwards" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/* Annotations of an object that `helm test` makes, and deletes itself: "weight". */}}
{{- define "cta-group.forTest" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}

{{/*
Template of the pod of a Job that runs a command of the operator's image once:
(dict "root" $ "component" "its label" "account" "service account" "tolerations" list "args" list).
*/}}
{{- define "cta-group.jobPod" -}}
{{- $root := .root }}
{{- $operator := $root.Values.operator }}
metadata:
  labels:
    {{- include "cta-group.labels" (list $root .component) | nindent 4 }}
spec:
  serviceAccountName: {{ .account }}
  restartPolicy: Never
  {{- include "cta-group.pullSecrets" $root | nindent 2 }}
  {{- with $operator.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $operator.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  terminationGracePeriodSeconds: 5
  securityContext:
    runAsNonRoot: true
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .component }}
      image: {{ include "cta-group.image" (list $root "operator" $operator.image) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args:
        {{- toYaml .args | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        requests: {cpu: 20m, memory: 64Mi}
        limits: {memory: 256Mi}
{{- end }}
