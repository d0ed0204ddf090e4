import type { KindRules, ResourceView } from '../core/index.ts';
import type { AccessJudge, SigningDesk, TokenDesk } from './desks.ts';
import { ForcedEnds } from './forced-ends.ts';
import { kindRules, kindViews } from './kind-rules.ts';
import { type KindLoops, kindLoops, type LoopNeeds } from './loops/index.ts';

export interface KindNeeds {
  readonly signing: SigningDesk;
  readonly tokens: TokenDesk;
  readonly judge: AccessJudge;
  /** Where services get their addresses from, such as 10.96.0.0/16. */
  readonly serviceRange: string;
}

export interface Kinds {
  /** By plural. */
  readonly rules: Readonly<Record<string, KindRules>>;
  /** By plural and group. */
  readonly views: Readonly<Record<string, ResourceView>>;
  /** For the world that was made of the rules. */
  readonly loops: (needs: Omit<LoopNeeds, 'forced' | 'signing'>) => KindLoops;
}

export function makeKinds(needs: KindNeeds): Kinds {
  const forced = new ForcedEnds();
  const { signing } = needs;
  return {
    rules: kindRules({ ...needs, forced }),
    views: kindViews,
    loops: (more) => kindLoops({ ...more, forced, signing }),
  };
}
