-- grain: tuning x step
SELECT tuning, step, distance_nats, total, difference, loss FROM tuning_step ORDER BY tuning, step;
