import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { clusterMutations } from './cluster/cluster-mutations.ts';
import { deviceMutations } from './devices/device-mutations.ts';
import { diskMutations } from './disk/disk-mutations.ts';
import { mutations } from './mutations.ts';
import { pressureMutations } from './pressure/pressure-mutations.ts';
import { resizeMutations } from './resizes/resize-mutations.ts';
import type { SeedOptions, SeedResult } from './seed-options.ts';
import { playSeeds } from './seeds.ts';
import { prepareSimulation, simulate } from './simulate.ts';
import { machineMutations } from './volumes/machine-mutations.ts';
import { volumeMutations } from './volumes/volume-mutations.ts';

const mutatedSeeds = 1_000;

describe('invariants of the simulation', () => {
  before(prepareSimulation);

  for (const [name, mutate] of Object.entries({
    ...mutations,
    ...clusterMutations,
    ...volumeMutations,
    ...machineMutations,
    ...diskMutations,
    ...deviceMutations,
    ...resizeMutations,
    ...pressureMutations,
  })) {
    it(`the invariants find a typical kubelet bug: ${name}`, async () => {
      const options: SeedOptions = { cluster: 'alone', ...mutate.shows };
      let found: SeedResult | undefined;
      for (let seed = 1; seed <= mutatedSeeds && found === undefined; seed++) {
        const result = await simulate(seed, { ...options, mutate });
        if (result.violations.some((violation) => violation.startsWith(mutate.breaks ?? ''))) found = result;
      }
      assert.ok(found !== undefined, `${mutatedSeeds} seeds did not find it`);
      // The same seed must pass without the mutation, because no other test runs this
      // configuration.
      if (mutate.shows?.always !== undefined) await playSeeds([found.seed], options);
    });
  }
});
