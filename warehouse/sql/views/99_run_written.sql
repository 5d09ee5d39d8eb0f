-- grain: run_id x table_name
-- Rows that a run wrote and that no later run has replaced, in the tables with a run_id; for the
-- others use `plumbline runs RUN`.
CREATE OR REPLACE VIEW run_written AS
SELECT run_id, table_name, count(*) AS n_rows FROM ($tables_with_a_run_id) GROUP BY ALL;
