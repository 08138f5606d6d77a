-- Whether the export of logs has the content of an organization's calls: 1, what is asked and what is answered; 0: neither.
ALTER TABLE organizations ADD COLUMN export_content BIGINT NOT NULL DEFAULT 0 CHECK (export_content IN (0, 1));
