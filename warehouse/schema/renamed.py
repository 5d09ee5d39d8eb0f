"""Columns that were renamed since Plumbline 0.1, and tables that were removed."""

from __future__ import annotations

import re

#: The SQL schema in which tables, views and macros have the column names of Plumbline 0.1.
OLD_SCHEMA = "v0_1"
#: Removed tables. Their rows aren't read; `compact` removes their files together with the versions
#: of a warehouse that name these files.
REMOVED = frozenset({"fairpair_length"})

#: One entry per table, view or macro: ``name: new (old), ...``. The first old name is from 0.1.
_TEXT = """
corpus: window_tokens (window)
pair_count: window_tokens (window)
word_list: word_a (female), word_b (male)
word_association: pmi_nats_se (pmi_se_nats)
word_delta: delta_nats_se (delta_se_nats)
metric_value: value_se (sd), value_low (ci_low), value_high (ci_high)
change_point: q_moved (p_moved), q_lasting (p_lasting)
control: partial_correlation_low (partial_low), partial_correlation_high (partial_high)
word_evidence: delta_nats_se (delta_cluster_se_nats),
    delta_nats_count_se (delta_count_se_nats), delta_nats_low (delta_low_nats),
    delta_nats_high (delta_high_nats)
word_copies: delta_nats_low (delta_low_nats), delta_nats_high (delta_high_nats)
word_source: delta_nats_low (delta_low_nats), delta_nats_high (delta_high_nats),
    delta_without_nats_low (without_low_nats), delta_without_nats_high (without_high_nats)
word_collocate: log_odds_nats_se (log_odds_se_nats), log_odds_nats_low (log_odds_low_nats),
    log_odds_nats_high (log_odds_high_nats)
word_change: change_nats_se (change_se_nats), change_nats_low (change_low_nats),
    change_nats_high (change_high_nats)
fairpair_prompt: fairpair_f_low (ci_low), fairpair_f_high (ci_high), q_permutation (p_adjusted)
fairpair_set: fairpair_f_low (ci_low), fairpair_f_high (ci_high)
fairpair_calibration: fairpair_f_low (ci_low), fairpair_f_high (ci_high)
fairpair_spread: bias_b_low (bias_low), bias_b_high (bias_high), variability_pg_low (pg_low),
    variability_pg_high (pg_high), variability_gp_low (gp_low), variability_gp_high (gp_high)
word_lean: delta_nats_se (delta_se_nats), lean_nats_low (delta_low_nats),
    lean_nats_high (delta_high_nats)
listed_lean: lean_nats_low (delta_low_nats), lean_nats_high (delta_high_nats)
step_delta: delta_nats_se (delta_se_nats)
checkpoint_word: mean_log_ratio_nats_se (se_nats), mean_log_ratio_nats_low (low_nats),
    mean_log_ratio_nats_high (high_nats)
checkpoint_curve: value_low (low), value_high (high)
dose_response: response_low (ci_low), response_high (ci_high)
window_response: response_low (ci_low), response_high (ci_high),
    short_of_whole_low (short_low), short_of_whole_high (short_high)
control_without_dose: coefficient_low (ci_low), coefficient_high (ci_high)
us_curve: us_low (ci_low), us_high (ci_high)
us_difference: difference_se (se), difference_low (ci_low), difference_high (ci_high)
us_gap: gap_se (se), gap_low (ci_low), gap_high (ci_high)
us_by_start: pd_points_low (pd_low), pd_points_high (pd_high)
preference_against: us_difference_low (us_low), us_difference_high (us_high),
    pd_difference_low (pd_low), pd_difference_high (pd_high)
disclosure: add_nats_low (add_low), add_nats_high (add_high),
    add_normalised_nats_low (add_normalised_low), add_normalised_nats_high (add_normalised_high)
disclosure_change: before_mean_low (before_low), before_mean_high (before_high),
    after_mean_low (after_low), after_mean_high (after_high)
disclosure_difference: before_mean_low (before_low), before_mean_high (before_high),
    after_mean_low (after_low), after_mean_high (after_high)
tuning_effect: difference_low (low), difference_high (high)
perplexity_difference: perplexity_ratio_low (ratio_low), perplexity_ratio_high (ratio_high)
fairpair_difference: before_f_low (before_low), before_f_high (before_high),
    after_f_low (after_low), after_f_high (after_high)
benchmark_figure: figure_low (ci_low), figure_high (ci_high)
word_difference: difference_nats_low (ci_low_nats), difference_nats_high (ci_high_nats)
corpus_agreement: correlation_low (r_low), correlation_high (r_high),
    rank_correlation_low (rho_low), rank_correlation_high (rho_high)
gas: gas_f_of_all (gas_f), gas_f_of_all_low (gas_f_low), gas_f_of_all_high (gas_f_high),
    gas_m_of_all (gas_m), gas_m_of_all_low (gas_m_low), gas_m_of_all_high (gas_m_high),
    gas_both_of_all (gas_both)
gas_prompt: gas_f_of_all (gas_f), gas_m_of_all (gas_m), gas_both_of_all (gas_both)
decoding_sweep: gas_f_of_all (gas_f), gas_f_of_all_low (gas_f_low),
    gas_f_of_all_high (gas_f_high), gas_m_of_all (gas_m), gas_m_of_all_low (gas_m_low),
    gas_m_of_all_high (gas_m_high), gas_both_of_all (gas_both)
"""


def parsed(text: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """``{table, view or macro: {today's column name: old names}}``, from ``_TEXT``'s notation.

    >>> parsed("demo: x_low (ci_low), x_se (sd spread)")
    {'demo': {'x_low': ('ci_low',), 'x_se': ('sd', 'spread')}}
    """
    old_names = {}
    for line in re.sub(r"\n +", " ", text.strip()).splitlines():
        name, _, columns = line.partition(": ")
        pairs = re.findall(r"(\w+) \(([\w ]+)\)", columns)
        old_names[name] = {new: tuple(old.split()) for new, old in pairs}
    return old_names


RENAMED = parsed(_TEXT)
