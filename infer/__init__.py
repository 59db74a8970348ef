"""How a document is read: sections, observations, agents, environment, engines, evaluation."""

from .plan import Plan, Section, plan_sections

__all__ = ["Plan", "Section", "plan_sections"]
