import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ImageService, RuntimeService } from './gen/runtime.ts';
import { type CriOperation, deadlineMs, operationNames } from './operations.ts';

const minute = 60_000;

const deadlines: readonly (readonly [CriOperation, object, number | undefined])[] = [
  ['version', {}, 2 * minute],
  ['listContainers', {}, 2 * minute],
  ['removeContainer', {}, 2 * minute],
  ['stopPodSandbox', {}, 2 * minute],
  ['runPodSandbox', {}, 4 * minute],
  ['stopContainer', {}, 2 * minute],
  ['stopContainer', { timeout: 0n }, 2 * minute],
  ['stopContainer', { timeout: 30n }, 2 * minute + 30_000],
  ['stopContainer', { timeout: -1n }, 2 * minute],
  ['checkpointContainer', { timeout: 10n }, 2 * minute + 10_000],
  ['execSync', { timeout: 5n }, 2 * minute + 5_000],
  ['execSync', { timeout: 0n }, undefined],
  ['execSync', {}, undefined],
  ['pullImage', {}, undefined],
  ['imageStatus', {}, 2 * minute],
];

for (const [operation, request, expected] of deadlines) {
  const requested = 'timeout' in request ? ` with ${request.timeout} s` : '';
  test(`the deadline of ${operation}${requested} is ${expected ?? 'none'}`, () => {
    assert.equal(deadlineMs(operation, request, 2 * minute), expected);
  });
}

test('deadlines follow the configured runtimeRequestTimeout', () => {
  assert.equal(deadlineMs('runPodSandbox', {}, 1_000), 2_000);
  assert.equal(deadlineMs('stopContainer', { timeout: 7n }, 1_000), 8_000);
});

test('every call of both services has a unique lower case metric name', () => {
  const names = Object.values(operationNames);
  const methods = [...Object.keys(RuntimeService.methods), ...Object.keys(ImageService.methods)];
  assert.deepEqual(Object.keys(operationNames).sort(), methods.sort());
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z_]+$/);
});
