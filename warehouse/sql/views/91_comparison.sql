-- grain: none, functions of prompts that the comparisons below share
-- A prompt in a form for comparing, much as debias tuning compares prompts. It ignores case, white
-- space, and final punctuation, also around a final `and`.
CREATE OR REPLACE MACRO plain_prompt(written) AS regexp_replace(
    array_to_string(string_split_regex(trim(lower(nfc_normalize(written)), E' \t\n'), '\s+'), ' '),
    '[\s.,;:!?…]*(\band)?[\s.,;:!?…]*$', ''
);

-- Which way a difference goes: `fell` if its interval lies below 0, `rose` if above 0, `neither` if
-- it contains 0. NULL without an interval, and over fewer than five clusters (of either kind).
CREATE OR REPLACE MACRO direction_of(lower_end, upper_end, n_of := NULL) AS CASE
    WHEN NOT is_enough(n_of) THEN NULL
    WHEN upper_end < 0 THEN 'fell'
    WHEN lower_end > 0 THEN 'rose'
    WHEN lower_end IS NOT NULL THEN 'neither'
END;
