import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Finding } from './check.ts';
import { formatJson, formatText } from './report.ts';

const findings: readonly Finding[] = [
  { check: 'node', severity: 'ok', finding: 'Node.js 26.10.0' },
  { check: 'cgroups', severity: 'note', finding: 'v1', consequence: 'word '.repeat(40).trim() },
  { check: 'root', severity: 'fail', finding: 'user 7', consequence: 'nothing works', advice: 'be root' },
];

describe('report of doctor', () => {
  it('aligns the columns, wraps long text and ends the report with a summary', () => {
    const lines = formatText(findings).split('\n');
    assert.equal(lines[0], 'ok    node     Node.js 26.10.0');
    assert.equal(lines[1], 'note  cgroups  v1');
    assert.match(lines[2] ?? '', /^ {15}so: word/);
    assert.match(lines[3] ?? '', /^ {19}word/);
    assert.ok(lines.every((line) => line.length <= 110));
    assert.ok(lines.includes('               do: be root'));
    assert.equal(lines.at(-2), '1 ok, 1 note, 0 warnings, 1 failure: this machine cannot run pods yet.');
  });

  it('prints the findings and the summary as JSON', () => {
    const parsed: unknown = JSON.parse(formatJson(findings));
    assert.deepEqual(parsed, { summary: { ok: 1, note: 1, warn: 0, fail: 1 }, checks: findings });
  });
});
