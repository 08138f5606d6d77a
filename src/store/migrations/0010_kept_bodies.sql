-- Until when what is asked and answered in the organization's calls may be kept in memory and shown in the console, in unix milliseconds.
ALTER TABLE organizations ADD COLUMN keep_bodies_until BIGINT;
