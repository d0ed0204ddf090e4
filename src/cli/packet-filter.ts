import { type Clock, KubelingError, runCommand } from '../lib/index.ts';
import type { PacketFilter } from '../node/index.ts';

const withinMs = 15_000;
/** How the programs end when a rule or chain is not there, or is there already. */
const refusals: readonly number[] = [1, 2];

/** The packet filter of this machine, or of where the words before the program's lead. */
export function hostPacketFilter(clock: Clock, before: readonly string[] = []): PacketFilter {
  return {
    async run(program, rest, signal) {
      const [file = program, ...args] = [...before, program, ...rest];
      const { end, stderr } = await runCommand({ file, args, clock, deadlineMs: withinMs }, signal);
      if (end.kind === 'exited' && end.code === 0) return 'yes';
      if (end.kind === 'exited' && refusals.includes(end.code)) return 'no';
      throw new KubelingError('FIREWALL_REFUSED', `Cannot run ${program}: ${stderr.trim().slice(0, 200)}`);
    },
  };
}
