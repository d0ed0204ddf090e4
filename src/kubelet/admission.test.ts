import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aPod } from '../../test/fakes/pods.ts';
import { admitPod, groupsProblem, nodeAdmission } from './admission.ts';
import { noAbilities } from './runtime-abilities.ts';

const crowded = { standing: 'new', others: 3, maxPods: 3 } as const;
const sysctlProblem = 'forbidden sysctl: "kernel.sem" not allowlisted';
const appArmorProblem = 'Cannot enforce AppArmor: AppArmor is not enabled on the host';

test('a pod is admitted as long as there is room', () => {
  assert.deepEqual(admitPod({ ...crowded, others: 2 }), { admit: true });
  assert.deepEqual(admitPod(crowded), {
    admit: false,
    reason: 'OutOfpods',
    message: "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3",
  });
});

test('of several reasons the first counts: sysctls, then room, then AppArmor', () => {
  const all = { ...crowded, sysctlProblem, appArmorProblem };
  assert.deepEqual(admitPod(all), { admit: false, reason: 'SysctlForbidden', message: sysctlProblem });
  assert.equal(JSON.stringify(admitPod({ ...all, sysctlProblem: undefined })).includes('OutOfpods'), true);
  assert.deepEqual(admitPod({ ...crowded, others: 0, appArmorProblem }), {
    admit: false,
    reason: 'AppArmor',
    message: appArmorProblem,
  });
});

test('a pod that lives here already is not thrown out', () => {
  assert.deepEqual(admitPod({ ...crowded, standing: 'lives-here', sysctlProblem, appArmorProblem }), {
    admit: true,
  });
});

test('strict groups need a runtime that knows them', () => {
  const pod = (supplementalGroupsPolicy: string) =>
    aPod({ spec: { securityContext: { supplementalGroupsPolicy } } });
  const says = 'SupplementalGroupsPolicy=Strict is not supported in this node';
  assert.equal(groupsProblem(pod('Strict'), noAbilities), says);
  assert.equal(groupsProblem(pod('Strict'), { ...noAbilities, strictGroups: true }), undefined);
  assert.equal(groupsProblem(pod('Merge'), noAbilities), undefined);
  assert.equal(groupsProblem(aPod(), noAbilities), undefined);
  assert.deepEqual(admitPod({ ...crowded, groupsProblem: says }), {
    admit: false,
    reason: 'SupplementalGroupsPolicyNotSupported',
    message: says,
  });
});

test('a node judges by what its runtime can do at that moment', () => {
  let abilities = noAbilities;
  let isEnding = false;
  const admit = nodeAdmission({ maxPods: 1 }, { abilities: () => abilities, isShuttingDown: () => isEnding });
  const pod = aPod({ spec: { securityContext: { supplementalGroupsPolicy: 'Strict' } } });
  assert.equal(admit(pod, () => [], 'new').kind, 'refuse');
  abilities = { ...noAbilities, strictGroups: true };
  assert.equal(admit(pod, () => [], 'new').kind, 'admit');
  assert.equal(admit(pod, () => [aPod()], 'new').kind, 'refuse');
  isEnding = true;
  assert.deepEqual(
    admit(pod, () => [], 'new'),
    {
      kind: 'refuse',
      refusal: { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' },
    },
  );
  assert.equal(admit(pod, () => [], 'lives-here').kind, 'admit');
});
