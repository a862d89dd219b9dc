"""Figures of the built-in critics as SVG: transition graphs, topic covariances and language triangles."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from finecomb.corpora.critics.base import Critic, CriticScores
from finecomb.corpora.critics.languages import Languages
from finecomb.corpora.critics.sections import Sections
from finecomb.corpora.critics.sections_tables import mean_section_order, transition_differences
from finecomb.corpora.critics.topics import Topics
from finecomb.reporting.figures.language_simplex import language_simplex
from finecomb.reporting.figures.topic_covariance import topic_covariance_chart
from finecomb.reporting.figures.transition_graph import transition_graph


def draw_critic_figures(critic: Critic, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, str]:
    """Draw the figures of a critic, by name; a custom critic draws its own in `Critic.figures`."""
    corpora = {"real": real, **systems}
    match critic:
        case Sections():  # Deng et al. (2022), Figure 4
            order = mean_section_order(real)
            return {
                f"transitions-{name}": transition_graph(
                    name, transition_differences(critic.prior, real, scores), order
                ).to_svg()
                for name, scores in systems.items()
            }
        case Topics():  # Figure 6
            vectors = {name: np.stack(scores.points) for name, scores in corpora.items() if len(scores.points) > 1}
            return {"covariances": topic_covariance_chart(vectors).to_svg(heading=False)} if "real" in vectors else {}
        case Languages():  # Figure 7; a triangle shows exactly three languages
            points = {name: np.stack(scores.points) for name, scores in corpora.items() if scores.points}
            return (
                {"simplex": language_simplex(points).to_svg(heading=False)}
                if len(critic.topics) == 3 and points
                else {}
            )
    return critic.figures(real, systems)
