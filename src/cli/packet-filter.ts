import { programDirs } from '../containerd/index.ts';
import { type Clock, KubelingError, runCommand } from '../lib/index.ts';
import type { PacketFilter } from '../node/index.ts';

const withinMs = 15_000;
/** How the programs end when a rule or chain is not there, or is there already. */
const refusals: readonly number[] = [1, 2];

/**
 * The packet filter of this machine, or of the network namespace that the words before the program enter. The program
 * is found in the usual directories too, as the runtime finds it for network plugins: a user may have become root
 * without /usr/sbin in the PATH.
 */
export function hostPacketFilter(clock: Clock, before: readonly string[] = []): PacketFilter {
  const env = { ...process.env, PATH: programDirs(process.env, undefined).join(':') };
  return {
    async run(program, rest, signal) {
      const [file = program, ...args] = [...before, program, ...rest];
      const { end, stderr } = await runCommand({ file, args, clock, env, deadlineMs: withinMs }, signal);
      if (end.kind === 'exited' && end.code === 0) return 'yes';
      if (end.kind === 'exited' && refusals.includes(end.code)) return 'no';
      throw new KubelingError('FIREWALL_REFUSED', `Cannot run ${program}: ${stderr.trim().slice(0, 200)}`);
    },
  };
}
