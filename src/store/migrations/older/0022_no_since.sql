-- Calls that ended before a lease are stored before it is granted, so there is no time from which on they count.
ALTER TABLE limit_leases DROP COLUMN since;
