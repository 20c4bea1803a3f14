"""Roll-ups of one run share what is dear to compute; nothing of it outlives the run."""

import dagster as dg
import pandas as pd

from assets.stage.resources import Store
from dtef_pipeline.boards.boards import BoardEvidence
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions


def test_evidence_is_shared_by_the_roll_ups_of_a_run_and_gone_with_it() -> None:
    seen: list[tuple[dict[SurveyBoardOptions, BoardEvidence], int]] = []

    @dg.asset
    def first(store: Store) -> None:
        seen.append((store.run_state.evidence, len(store.run_state.evidence)))
        store.run_state.evidence[SurveyBoardOptions()] = BoardEvidence(pd.DataFrame(), None)

    @dg.asset(deps=[first])
    def second(store: Store) -> None:
        seen.append((store.run_state.evidence, len(store.run_state.evidence)))

    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    defs = dg.Definitions(assets=[first, second], resources={"store": Store()}, executor=dg.in_process_executor)
    # A job asks the instance that is in force for its state: here this test's, not one that another test left behind.
    with dg.DagsterInstance.ephemeral() as instance:
        job = defs.resolve_implicit_global_asset_job_def()
        for _ in range(2):
            assert job.execute_in_process(instance=instance, run_config=quiet).success
    assert [found for _, found in seen] == [0, 1, 0, 1]
    assert seen[0][0] is seen[1][0]
    assert seen[1][0] is not seen[2][0]
