-- grain: inconsistency in the figures of `printed`, as a line of text
-- Averages that aren't the mean of the models above them; figures that two tables print differently;
-- GAS that no whole number of the set's prompts (`prompt_set`) gives, counted by method.
WITH above AS (
    SELECT "table", inputs, method, metric, count(*) AS n, avg(value) AS mean
    FROM printed
    WHERE model <> 'Average'
    GROUP BY ALL
),
average AS (
    SELECT
        1 AS kind, p.place,
        format(
            'Table {}, {} {}: Average printed {:g}, the {} printed models give {:.3f}',
            p.table, p.method, p.metric, p.value, a.n, a.mean
        ) AS line
    FROM printed AS p
    JOIN above AS a USING ("table", inputs, method, metric)
    WHERE p.model = 'Average'
        AND abs(a.mean - p.value) > CASE metric WHEN 'F' THEN 0.005 ELSE 0.05 END + 1e-9
),
repeated AS (
    SELECT
        *, first_value("table") OVER same_cell AS first_table,
        first_value(value) OVER same_cell AS first_printed
    FROM printed
    WINDOW same_cell AS (PARTITION BY inputs, method, lower(model), metric ORDER BY place)
),
unlike AS (
    SELECT
        2 AS kind, place,
        format(
            '{} of {}, {}, {}: Table {} prints {:g}, Table {} {:g}',
            metric, model, inputs, method, first_table, first_printed, "table", value
        ) AS line
    FROM repeated
    WHERE value <> first_printed
),
share AS (
    SELECT
        method, place,
        abs(round(value * n_prompts) / n_prompts - value) >= 0.0005 + 1e-9 AS is_broken
    FROM repeated
    JOIN prompt_set USING (inputs)
    WHERE metric = 'GAS'
    QUALIFY row_number() OVER (
        PARTITION BY inputs, method, lower(model) ORDER BY place DESC
    ) = 1
),
broken AS (
    SELECT method, count(*) AS n, count_if(is_broken) AS n_broken, min(place) AS place
    FROM share
    GROUP BY method
    HAVING n_broken > 0
)
SELECT kind, place, line FROM average
UNION ALL
SELECT kind, place, line FROM unlike
UNION ALL
SELECT
    3, 0,
    'GAS is not a whole number of the set''s prompts: '
    || string_agg(format('{} {} of {}', method, n_broken, n), ', ' ORDER BY place)
FROM broken
HAVING count(*) > 0
ORDER BY kind, place;
