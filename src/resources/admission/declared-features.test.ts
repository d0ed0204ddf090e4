import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredFeatures } from './declared-features.ts';

test('declares the features whose gates are enabled, and none if the gate for declarations is disabled', () => {
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
