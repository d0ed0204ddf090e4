import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SourceProblem } from './problems.ts';
import { problemsOfPod } from './problems.ts';

const place = {
  source: 'file',
  severity: 'error',
  path: '/m',
  line: undefined,
  column: undefined,
  field: '',
} as const;
const problems: readonly SourceProblem[] = [
  { ...place, message: 'mine', pods: ['web-n_default', 'db-n_default'] },
  { ...place, message: 'another pod', pods: ['db-n_default'] },
  { ...place, message: 'nobody knows whose', pods: [] },
  { ...place, message: 'all' },
];

test("lists the problems of a pod's manifest and those that concern all manifests of its source", () => {
  const found = problemsOfPod(problems, { isCalled: (name) => name === 'web-n_default', isKnown: true });
  assert.deepEqual(
    found.map(({ message }) => message),
    ['mine', 'all'],
  );
});

test('lists an unparsable manifest as a possible reason for a pod that is not defined', () => {
  const found = problemsOfPod(problems, { isCalled: () => false, isKnown: false });
  assert.deepEqual(
    found.map(({ message }) => message),
    ['nobody knows whose', 'all'],
  );
});
