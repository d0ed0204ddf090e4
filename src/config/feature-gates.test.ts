import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GateName, gateDependencies, gateSpecs } from './feature-gate-table.ts';
import { checkFeatureGates, FeatureGates } from './feature-gates.ts';

function errors(written: Readonly<Record<string, boolean>>): readonly string[] {
  return checkFeatureGates(written).flatMap(({ weight, message }) => (weight === 'error' ? [message] : []));
}

test('returns the default of a gate that is not set', () => {
  const gates = new FeatureGates();
  assert.equal(gates.enabled('KubeletCrashLoopBackOffMax'), true);
  assert.equal(gates.enabled('MemoryQoS'), false);
  assert.equal(gates.enabled('AllowOverwriteTerminationGracePeriodSeconds'), false);
});

test('returns the value of a gate that is set', () => {
  const gates = new FeatureGates({ MemoryQoS: true, ContainerCheckpoint: false });
  assert.equal(gates.enabled('MemoryQoS'), true);
  assert.equal(gates.enabled('ContainerCheckpoint'), false);
});

test('applies AllAlpha and AllBeta to their stage, except gates that are set by name', () => {
  const all = new FeatureGates({
    AllAlpha: true,
    AllBeta: false,
    MemoryQoS: false,
    ContainerCheckpoint: true,
  });
  assert.equal(all.enabled('QOSReserved'), true);
  assert.equal(all.enabled('MemoryQoS'), false);
  assert.equal(all.enabled('SystemdWatchdog'), true);
  assert.equal(all.enabled('KubeletPSI'), gateSpecs.KubeletPSI.default);
  assert.equal(all.enabled('ContainerCheckpoint'), true);
  assert.equal(all.enabled('ContainerRestartRules'), false);
});

test('rejects unknown and locked gates with the messages of the Go kubelet', () => {
  assert.deepEqual(errors({ Foo: true }), ['unrecognized feature gate: Foo']);
  assert.deepEqual(errors({ MemoryQos: true }), [
    'unrecognized feature gate: MemoryQos (did you mean MemoryQoS?)',
  ]);
  assert.deepEqual(errors({ NodeSwap: false }), [
    'cannot set feature gate NodeSwap to false, feature is locked to true',
  ]);
  assert.deepEqual(errors({ NodeSwap: true, AllAlpha: true, AllBeta: true }), []);
  assert.deepEqual(errors({ constructor: true }), ['unrecognized feature gate: constructor']);
});

test('rejects an enabled gate that depends on a disabled gate, and names the gate that was set', () => {
  const found = checkFeatureGates({
    GracefulNodeShutdown: false,
    GracefulNodeShutdownBasedOnPodPriority: true,
  });
  assert.deepEqual(
    found.find((finding) => finding.gate === 'GracefulNodeShutdownBasedOnPodPriority')?.message,
    'GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: GracefulNodeShutdown',
  );
  assert.deepEqual(
    [...new Set(checkFeatureGates({ GracefulNodeShutdown: false }).map(({ gate }) => gate))],
    ['GracefulNodeShutdown'],
  );
});

test('only warns about a stable or deprecated gate that is set', () => {
  const [stable] = checkFeatureGates({ NodeSwap: true });
  assert.equal(stable?.weight, 'warning');
  assert.deepEqual(checkFeatureGates({ ContainerCheckpoint: true }), []);
});

test('the feature gate table contains only valid stages and dependencies', () => {
  assert.deepEqual(checkFeatureGates({}), []);
  assert.deepEqual(errors({ AllAlpha: true }), []);
  assert.deepEqual(errors({ AllBeta: true }), []);
  assert.deepEqual(errors({ AllAlpha: true, AllBeta: true }), []);
  for (const [gate, needed] of Object.entries(gateDependencies)) {
    assert.ok(Object.hasOwn(gateSpecs, gate), gate);
    for (const name of needed) assert.ok(Object.hasOwn(gateSpecs, name), name);
  }
  assert.ok(Object.keys(gateSpecs).length > 230);
});

test('lists every gate with its state', () => {
  const listed = new FeatureGates({ AllAlpha: true }).list();
  const qos = listed.find(({ name }) => name === 'MemoryQoS');
  assert.deepEqual(qos, { name: 'MemoryQoS', stage: 'alpha', enabled: true });
  assert.equal(listed.length, (Object.keys(gateSpecs) as GateName[]).length);
});
