-- The keys of a project or of a member are read page by page, in the order of their ids.
CREATE INDEX api_keys_of_project_by_id ON api_keys (project_id, id);
CREATE INDEX api_keys_of_member_by_id ON api_keys (member_id, id);
DROP INDEX api_keys_of_project;
DROP INDEX api_keys_of_member;

-- A start that brings the journal of a process looks for calls that are stored already, among those of that process alone.
CREATE INDEX call_batches_of_owner ON call_batches (owner, began_last, began_first);
