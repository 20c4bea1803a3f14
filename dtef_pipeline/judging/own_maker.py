"""Whether a judge speaks of its own maker's models, and so perhaps of itself."""

from __future__ import annotations

from collections.abc import Collection

from dtef_pipeline.asking.makers import maker_of


def is_self_judged(judge: str, judged: str, own_servers: Collection[str] = ()) -> bool:
    """Whether judge and judged, as model strings or variants, are of one maker; where that of either is unknown, whether they are one model.

    `own_servers`: the model strings that are asked at an address of their own, as of `Models.own_servers`.
    """
    judge, judged = (model.partition("[")[0] for model in (judge, judged))
    maker, other = (maker_of(model, own_server=model in own_servers) for model in (judge, judged))
    return judge == judged or (maker is not None and maker == other)
