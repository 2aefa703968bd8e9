{{/* What an endpoint of a PodMonitor and of a ServiceMonitor have in common: its values. */}}
{{- define "cta-group.endpoint" -}}
port: metrics
interval: {{ .interval }}
scrapeTimeout: {{ .scrapeTimeout }}
# A label of ours wins over the target's of the same name: `namespace` and `pod` are the tenant's.
honorLabels: true
relabelings:
  # Dashboards and alerts speak of nodes.
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: node
  {{- with .relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
