import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { clusterMutations } from './cluster/cluster-mutations.ts';
import { mutations } from './mutations.ts';
import { describeFailure } from './report.ts';
import { prepareSimulation, type SeedResult, simulate } from './simulate.ts';

const seeds = 200;
const joinedSeeds = 40;
const repeatedSeeds = 20;
const repeatedJoinedSeeds = 5;
const mutatedSeeds = 1_000;

describe('the whole kubelet in simulation', () => {
  before(prepareSimulation);

  it(`keeps its promises under ${seeds} seeds`, async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const result = await simulate(seed);
      if (result.violations.length > 0) assert.fail(await describeFailure(result));
    }
  });

  it(`keeps them in a cluster, under ${joinedSeeds} seeds`, async () => {
    const options = { cluster: 'joined' } as const;
    for (let seed = 1; seed <= joinedSeeds; seed++) {
      const result = await simulate(seed, options);
      if (result.violations.length > 0) assert.fail(await describeFailure(result, options));
    }
  });

  for (const [cluster, count] of [
    ['alone', repeatedSeeds],
    ['joined', repeatedJoinedSeeds],
  ] as const) {
    it(`lives the same life again under the same seed, ${cluster}`, async () => {
      for (let seed = 1; seed <= count; seed++) {
        const [once, again] = [await simulate(seed, { cluster }), await simulate(seed, { cluster })];
        assert.equal(again.hash, once.hash, `Seed ${seed} went another way`);
      }
    });
  }

  for (const [name, mutate] of Object.entries({ ...mutations, ...clusterMutations })) {
    it(`finds a classic bug: ${name}`, async () => {
      let found: SeedResult | undefined;
      for (let seed = 1; seed <= mutatedSeeds && found === undefined; seed++) {
        const result = await simulate(seed, { mutate, cluster: 'alone', ...mutate.shows });
        if (result.violations.some((violation) => violation.startsWith(mutate.breaks ?? ''))) found = result;
      }
      assert.ok(found !== undefined, `${mutatedSeeds} seeds did not show it`);
    });
  }
});
