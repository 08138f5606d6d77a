-- Prompts of a project, or of all projects of an organization. A prompt that was removed keeps its row, so that the number
-- of a version never means another text.
CREATE TABLE prompts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    project_id TEXT REFERENCES projects (id),
    name TEXT NOT NULL,
    last_version BIGINT NOT NULL
);
CREATE UNIQUE INDEX prompts_of_organization ON prompts (organization_id, name) WHERE project_id IS NULL;
CREATE UNIQUE INDEX prompts_of_project ON prompts (project_id, name) WHERE project_id IS NOT NULL;

-- The content is JSON. It never changes.
CREATE TABLE prompt_versions (
    prompt_id TEXT NOT NULL REFERENCES prompts (id),
    version BIGINT NOT NULL,
    content TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (prompt_id, version)
);

CREATE TABLE prompt_labels (
    prompt_id TEXT NOT NULL REFERENCES prompts (id),
    label TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (prompt_id, label),
    FOREIGN KEY (prompt_id, version) REFERENCES prompt_versions (prompt_id, version)
);
