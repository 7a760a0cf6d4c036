"""A site as the passes report it, in the terms of the index."""

from __future__ import annotations

import math

from zyfa_ort.graph_passes.report import SiteReport

from models.corpus import Site


def recovered(site: SiteReport, scale: float) -> Site:
    """What the passes read out of the graph. Exporters write scales as products of two rounded square roots: one that is
    as good as `scale` is taken for it."""
    assert site.num_heads and site.kv_num_heads and site.head_dim and site.v_head_dim
    found = site.scale if site.scale is not None else site.head_dim**-0.5
    return Site(
        heads=site.num_heads,
        kv_heads=site.kv_num_heads,
        head_dim=site.head_dim,
        v_head_dim=site.v_head_dim,
        scale=scale if math.isclose(found, scale, rel_tol=1e-3) else found,
        causal=site.is_causal,
        top_left=site.causal_alignment == "top_left",
        window=site.window_left + 1,
        padding="key mask" in site.mask,
        softcap=site.softcap,
        bias="bias" in site.mask,
        sinks="sinks" in site.mask,
        past=site.past,
    )
