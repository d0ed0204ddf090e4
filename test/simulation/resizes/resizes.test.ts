import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 20;
const repeatedSeeds = 3;
const resizing = { cluster: 'joined', resizes: 'many' } as const;

describe('the whole kubelet in simulation, with pods that are resized', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`a node with resized pods holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), resizing, lives));

  it('the same seed replays the same history with resizes', () =>
    playAgain(seedsUpTo(repeatedSeeds), resizing, lives));
});
