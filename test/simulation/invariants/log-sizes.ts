import { posix } from 'node:path';
import type { MemoryFiles } from '../../../src/simulator/index.ts';
import { logPolicy } from '../disk/scarce-disk.ts';
import type { Rule, Scene } from './scene.ts';

/** What one prints between two looks, and a little more while the runtime does not answer. */
const slackBytes = 5_000;

/** When all is calm the logs of a container, of all its instances together, hold no more than they may. */
export function logsStaySmall({ report }: Scene, files: Pick<MemoryFiles, 'paths' | 'read'>): Rule {
  return {
    settled() {
      const logs = files.paths().filter((path) => path.startsWith('/var/log/pods/'));
      for (const [directory, paths] of Map.groupBy(logs, posix.dirname)) {
        const bytes = paths.reduce((sum, path) => sum + (files.read(path)?.length ?? 0), 0);
        const most = logPolicy.maxBytes * logPolicy.maxFiles + slackBytes;
        const names = paths.map((path) => posix.basename(path)).sort();
        if (bytes > most) report('logs hold no more than they may', `${directory}: ${bytes} in ${names}`);
      }
    },
  };
}
