import { openPrivateContainerd, type PrivateContainerd } from '../containerd/index.ts';
import { type CriClient, type CriObserver, createCriClient, wireTransport } from '../cri/index.ts';
import type { CommandContext } from './command.ts';
import type { Home } from './home.ts';

/** The containerd that belongs to this home, running or not. */
export async function privateContainerd(home: Home, context: CommandContext): Promise<PrivateContainerd> {
  const { clock, random, env } = context;
  return await openPrivateContainerd({ dataDir: home.dataDir, clock, random, env, cgroupDriver: 'cgroupfs' });
}

export function connectRuntime(
  endpoint: string,
  { clock, random }: CommandContext,
  observer: CriObserver = { called() {} },
): CriClient {
  return createCriClient({ transport: wireTransport({ endpoint, clock, random }), clock, observer });
}
