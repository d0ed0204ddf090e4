import { posix } from 'node:path';
import type { MemoryFiles } from '../../simulator/index.ts';
import { logPolicy } from '../disk/scarce-disk.ts';
import type { Rule, Scene } from './scene.ts';

/**
 * How far a log may exceed its limit: by the output of a container between two size checks, and
 * while the full log is renamed.
 */
const slackBytes = 3_000;
/** How long a log may exceed its limit, because no kubelet could rotate it in the meantime. */
const patienceMs = 15_000;

/** On an idle node the logs of all instances of a container together stay within their limit. */
export function logsStaySmall({ report, nowMs }: Scene, files: Pick<MemoryFiles, 'paths' | 'read'>): Rule {
  const most = logPolicy.maxBytes * logPolicy.maxFiles + slackBytes;
  let largeSince: ReadonlyMap<string, number> = new Map();
  return {
    kubeletStarted() {
      largeSince = new Map();
    },
    settled() {
      const logs = files.paths().filter((path) => path.startsWith('/var/log/pods/'));
      const large = new Map<string, number>();
      for (const [directory, paths] of Map.groupBy(logs, posix.dirname)) {
        const bytes = paths.reduce((sum, path) => sum + (files.read(path)?.length ?? 0), 0);
        if (bytes <= most) continue;
        const since = largeSince.get(directory) ?? nowMs();
        large.set(directory, since);
        const names = paths.map((path) => posix.basename(path)).sort();
        if (nowMs() - since >= patienceMs)
          report('logs hold no more than they may', `${directory}: ${bytes} in ${names}`);
      }
      largeSince = large;
    },
  };
}
