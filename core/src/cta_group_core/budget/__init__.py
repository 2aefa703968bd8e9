"""Latency budgets: what a workload wants, what its vLLM servers did, and how many groups would keep the budget.

Advice only: nothing here, and nothing that uses it, changes a workload.
"""
