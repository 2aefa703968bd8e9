{{/* What the pods of both DaemonSets have in common: where they run. */}}
{{- define "cta-group.nodePlacement" -}}
{{- with .Values.nodes.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodes.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .Values.nodes.selector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodes.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodes.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "cta-group.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Environment by which the driver comes into a node pod: (list $ "driver capabilities"). None for simulated GPUs. */}}
{{- define "cta-group.driverEnv" -}}
{{- $root := index . 0 }}
{{- if eq $root.Values.gpus.source "nvml" }}
{{- if not $root.Values.nodes.driverRoot }}
# The NVIDIA container runtime reads these two.
- name: NVIDIA_VISIBLE_DEVICES
  value: all
- name: NVIDIA_DRIVER_CAPABILITIES
  value: {{ index . 1 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "cta-group.driverMount" -}}
{{- if and (eq .Values.gpus.source "nvml") .Values.nodes.driverRoot }}
- name: driver
  mountPath: /driver
  readOnly: true
{{- end }}
{{- end }}

{{- define "cta-group.driverVolume" -}}
{{- if and (eq .Values.gpus.source "nvml") .Values.nodes.driverRoot }}
- name: driver
  hostPath:
    path: {{ .Values.nodes.driverRoot }}
    type: Directory
{{- end }}
{{- end }}

{{/*
Security of a node pod's container: (dict "privileged" bool "seLinuxOptions" map). Root in every case: the folders of
the kubelet's sockets belong to root, mode 0750. Without any capability root is still their owner.
*/}}
{{- define "cta-group.nodeSecurity" -}}
runAsUser: 0
readOnlyRootFilesystem: true
{{- if .privileged }}
privileged: true
{{- else }}
privileged: false
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}
{{- with .seLinuxOptions }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Probes against the metrics port. Until a container was ready once it is asked every second, so that a rollout goes on the
moment it is, and kubelet asks nothing else; one that does not become ready for ten minutes is started anew.
*/}}
{{- define "cta-group.probes" -}}
startupProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 600
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* How the plugin is rolled. A kubelet before 1.37 drops both plugins of a resource when the older one of them ends. */}}
{{- define "cta-group.pluginUpdateStrategy" -}}
{{- if .Values.plugin.updateStrategy }}
{{- toYaml .Values.plugin.updateStrategy }}
{{- else if semverCompare ">=1.37.0-0" .Capabilities.KubeVersion.Version }}
type: RollingUpdate
rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
{{- else }}
type: RollingUpdate
rollingUpdate: {maxUnavailable: 1}
{{- end }}
{{- end }}
