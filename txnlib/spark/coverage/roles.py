"""The role of each copy: `core.verdicts.copies.Role` over columns.

Kafka: a KRaft broker leads from the instant of a PartitionRecord or PartitionChangeRecord of the metadata log that names it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLOCKS_DIFFER_MS
from txnlib.core.verdicts.copies import End, LeaderBasis, Role
from txnlib.spark import windows
from txnlib.spark.coverage.leaders import NO_LEADER
from txnlib.spark.coverage.sound_copies import ends_whole


def with_leader_in_force(
    copies: DataFrame, metadata_reach_ms: int | None, metadata_basis: LeaderBasis | None = None, *, hides_leaders: bool = False
) -> DataFrame:
    """Each copy with what the metadata log proves about its leader.

    A leader epoch in any copy that is above the log's shows that it is outdated for the partition. A copy that was taken after the
    end of the log may have had another leader by then. One that was taken before its broker began to lead is a follower's. If the
    log `hides_leaders`, a partition without a leader may have one in what is lost of it.
    """
    is_of_metadata = F.coalesce(F.col("leader_basis").startswith("METADATA_LOG"), F.lit(False))
    newest_epoch = F.max("leader_epoch").over(windows.whole_partition())
    is_newer_than_log = is_of_metadata & F.coalesce(newest_epoch > F.col("led_epoch"), F.lit(False))
    is_outdated = is_newer_than_log | _is_note_refuted()
    is_late = F.coalesce(F.col("captured_at_ms") > F.lit(metadata_reach_ms).cast("long"), F.lit(True))
    is_doubtful = (F.col("leader_basis") == LeaderBasis.METADATA_LOG.value) & is_late
    was_follower = F.coalesce(F.col("captured_at_ms") < F.col("led_since_ms") - CLOCKS_DIFFER_MS, F.lit(False))
    in_force = copies.withColumn("is_outdated", is_outdated).withColumns(
        {
            "leader": F.when(~F.col("is_outdated"), F.col("leader")),
            "leader_basis": F.when(is_doubtful, LeaderBasis.METADATA_LOG_UNCONFIRMED.value).otherwise(F.col("leader_basis")),
            "was_follower": is_of_metadata & was_follower,
        }
    )
    damaged = LeaderBasis.METADATA_LOG_DAMAGED
    may_be_lost = F.lit(hides_leaders) & (F.lit(metadata_basis is damaged) | F.col("leader_basis").isNull())
    basis = F.when(~F.col("is_outdated"), F.col("leader_basis"))
    basis = F.coalesce(basis, F.when(may_be_lost, damaged.value))
    is_leader = F.when(F.col("leader").isNotNull(), F.col("leader") == F.col("broker"))
    return in_force.withColumns({"leader_basis": basis, "is_leader": is_leader})


def _is_note_refuted() -> Column:
    """Whether another copy refutes that a partition's noted leader led it when its copy was taken.

    The other has a higher leader epoch, or the same one and a higher end: followers are never ahead of their leader. Copies that
    were taken later prove nothing, nor do those that were taken so shortly before that they may have been read after.
    """
    whole = windows.whole_partition()
    epoch, end = F.coalesce("leader_epoch", F.lit(-1)), F.coalesce("survives_until", F.lit(0))
    reach = F.struct(F.struct(epoch.alias("epoch"), end.alias("end")).alias("reach"), F.col("captured_at_ms").alias("at"))
    is_replica = ~F.col("is_printed")
    lead = F.max(F.when(is_replica & ends_whole() & (F.col("broker") == F.col("leader")), reach)).over(whole)
    others = F.collect_list(F.when(is_replica & (F.col("broker") != F.col("leader")), reach)).over(whole)

    def refutes(other: Column) -> Column:
        is_earlier = (other["at"] == lead["at"]) | (other["at"] < lead["at"] - CLOCKS_DIFFER_MS)
        return F.coalesce(is_earlier, F.lit(True)) & (other["reach"] > lead["reach"])

    return F.coalesce(F.exists(others, refutes), F.lit(False))


def with_role(copies: DataFrame) -> DataFrame:
    """Each copy with its role and its end (`core.verdicts.copies`)."""
    reached = F.greatest("noted_high_watermark", "reached_offset", "recovery_point")
    is_short = (F.col("tail") == "CORRUPT") | (reached > F.col("survives_until"))
    end = F.when(F.coalesce(is_short, F.lit(False)), End.SHORT.value).when(
        F.coalesce(ends_whole(), F.lit(False)) & ~F.col("is_printed"), End.WHOLE.value
    )
    copies = copies.withColumn("ends", end.otherwise(End.TORN.value))
    whole = windows.whole_partition()
    reach = F.struct("leader_epoch", F.coalesce("survives_until", F.lit(0).cast("long")))
    is_furthest = reach.eqNullSafe(F.max(reach).over(whole))
    held_by = F.collect_set("broker").over(whole)
    is_replicated = F.coalesce(F.size(F.array_except("replicas", held_by)) == 0, F.lit(False)) & (F.size("replicas") > 0)
    is_only_replica = F.coalesce(F.col("replicas") == F.array("leader"), F.lit(False))
    is_stale = F.coalesce(F.col("leader_basis") == LeaderBasis.METADATA_LOG_STALE.value, F.lit(False))
    is_in_sync = F.coalesce(F.array_contains("in_sync", F.col("broker")), F.lit(False))
    is_furthest_in_sync = is_in_sync & F.when(is_in_sync, reach).eqNullSafe(F.max(F.when(is_in_sync, reach)).over(whole))
    is_last = is_furthest_in_sync | (is_furthest & is_replicated)
    unconfirmed = (LeaderBasis.METADATA_LOG_UNCONFIRMED.value, LeaderBasis.METADATA_LOG_DAMAGED.value)
    is_unconfirmed = F.coalesce(F.col("leader_basis").isin(*unconfirmed), F.lit(False))
    role = (
        F.when(is_stale | F.col("was_follower"), Role.OTHER.value)
        .when(F.col("leader").isNull(), F.when(is_furthest, Role.FURTHEST.value))
        .when(F.col("leader") == NO_LEADER, F.when(is_last, Role.LAST_LEADER.value))
        .when(F.col("is_leader"), F.when(is_furthest | ~is_unconfirmed, Role.LEADER.value))
        # If the folder does not name a broker, the copy's broker is unknown, unless there is only one replica. Console text is no
        # replica.
        .when(
            is_furthest & ~_names_broker() & ~F.col("is_printed"),
            F.when(is_only_replica, Role.LEADER.value).otherwise(Role.FURTHEST.value),
        )
    )
    return copies.withColumn("role", F.coalesce(role, F.lit(Role.OTHER.value)))


def _names_broker() -> Column:
    return F.coalesce(F.col("broker").rlike("^[0-9]+$"), F.lit(False))
