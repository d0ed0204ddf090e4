import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goArchitecture } from './go-architecture.ts';

test("uses Go's names of processors", () => {
  assert.deepEqual(['x64', 'arm64', 's390x', 'ppc64', 'ia32'].map(goArchitecture), [
    'amd64',
    'arm64',
    's390x',
    'ppc64le',
    '386',
  ]);
});
