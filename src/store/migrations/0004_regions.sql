-- The regions in which the calls of an organization or of a project may be computed, with commas between them; NULL: in all.
ALTER TABLE organizations ADD COLUMN regions TEXT;
ALTER TABLE projects ADD COLUMN regions TEXT;
