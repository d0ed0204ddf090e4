import { posix } from 'node:path';
import { errnoOf, type HeldDirectory, holdDirectory } from '../../../lib/index.ts';

/**
 * Holds the directory of a log, which is `<root>/<pod>/<container>/<log>`. Undefined when there is none. Pods may have the
 * root mounted and put links there: the directories of the pod and of the container must be none.
 */
export function logDirectoryOf(path: string): HeldDirectory | undefined {
  const [container, pod] = [posix.dirname(path), posix.dirname(posix.dirname(path))];
  try {
    return holdDirectory(posix.dirname(pod), [posix.basename(pod), posix.basename(container)]);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}
