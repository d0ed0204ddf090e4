import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredFeatures } from './declared-features.ts';

test('a node declares what it can do and its gates allow, and nothing where it is not to tell', () => {
  assert.deepEqual(
    declaredFeatures(() => true),
    [
      'ExtendWebSocketsToKubelet',
      'InPlacePodLevelResourcesVerticalScaling',
      'InPlacePodVerticalScalingInitContainers',
      'RestartAllContainersOnContainerExits',
    ],
  );
  assert.deepEqual(
    declaredFeatures((gate) => !gate.startsWith('ExtendWeb') && !gate.startsWith('InPlacePod')),
    ['RestartAllContainersOnContainerExits'],
  );
  assert.equal(
    declaredFeatures((gate) => gate !== 'NodeDeclaredFeatures'),
    undefined,
  );
});
