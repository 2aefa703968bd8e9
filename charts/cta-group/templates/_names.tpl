{{/* Name of the chart, as in app.kubernetes.io/name. */}}
{{- define "cta-group.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/*
Prefix of every object's name. Forty characters leave room for the longest suffix within the 63 of a label's value.
*/}}
{{- define "cta-group.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "cta-group.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "cta-group.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/*
Prefix of the names of objects that have no namespace. A release of the same name in another namespace gets other ones.
*/}}
{{- define "cta-group.clusterName" -}}
{{- $full := include "cta-group.fullname" . }}
{{- if eq $full .Release.Namespace }}{{ $full }}{{ else }}{{ printf "%s-%s" .Release.Namespace $full }}{{ end }}
{{- end }}

{{- define "cta-group.pluginName" -}}{{ include "cta-group.fullname" . }}-plugin{{- end }}
{{- define "cta-group.mpsName" -}}{{ include "cta-group.fullname" . }}-mps{{- end }}
{{- define "cta-group.operatorName" -}}{{ include "cta-group.fullname" . }}-operator{{- end }}

{{/* Image of a part: (list $ "plugin" "whole reference or empty"). */}}
{{- define "cta-group.image" -}}
{{- $root := index . 0 }}
{{- $image := $root.Values.image }}
{{- index . 2 | default (printf "%s-%s:%s" $image.repository (index . 1) ($image.tag | default $root.Chart.AppVersion)) }}
{{- end }}
