import { before, describe, it } from 'node:test';
import { type Lives, playAgain, playSeeds, seedsUpTo } from '../seeds.ts';
import { prepareSimulation } from '../simulate.ts';

const seeds = 20;
const repeatedSeeds = 4;
const short = { cluster: 'joined', pressure: 'some' } as const;

describe('the whole kubelet in simulation, on a node that is sometimes under resource pressure', () => {
  const lives: Lives = new Map();
  before(prepareSimulation);

  it(`a node under resource pressure holds its invariants under ${seeds} seeds`, () =>
    playSeeds(seedsUpTo(seeds), short, lives));

  it('the same seed replays the same history under resource pressure', () =>
    playAgain(seedsUpTo(repeatedSeeds), short, lives));
});
