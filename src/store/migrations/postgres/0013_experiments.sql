-- The SDK key of the datafile whose flags the project's requests may name as models. NULL: none.
ALTER TABLE projects ADD COLUMN experiments TEXT;
