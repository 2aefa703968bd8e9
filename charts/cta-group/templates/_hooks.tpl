{{/* Annotations of an object that Helm makes after the release is deleted, and deletes itself: "weight". */}}
{{- define "cta-group.afterwards" -}}
helm.sh/hook: post-delete
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end }}
