import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { playAgain, playSeeds, seedsUpTo } from './seeds.ts';
import { prepareSimulation, simulate } from './simulate.ts';

const seeds = 25;
const options = { disk: 'scarce' } as const;

describe('a simulated node with a small disk', () => {
  before(prepareSimulation);

  it(`a node with a small disk holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), options));

  it('the same seed replays the same history with a small disk', () =>
    playAgain(seedsUpTo(5), options, new Map()));

  it('a node with a small disk rotates logs and removes images while pods are added and removed', async () => {
    const { history } = await simulate(4, options);
    for (const what of ['image-removed', 'call reopenContainerLog'])
      assert.ok(
        history.some((line) => line.includes(what)),
        `${what} never happened`,
      );
  });
});
