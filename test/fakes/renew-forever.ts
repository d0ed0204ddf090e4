/**
 * Creates certificate authorities in the given directory and renews all of them endlessly, until
 * this process is killed. The clock alternates between two times, so that the authorities are
 * created again as well.
 */
import { join } from 'node:path';
import { collectLogs, instant, realClock } from '../../src/lib/index.ts';
import { diskCredentialFiles, openServerCredentials } from '../../src/local-api/security/index.ts';

const [directory = ''] = process.argv.slice(2);
const real = realClock();
const state = { aheadMs: 0 };
const clock = { ...real, now: () => instant(real.now() + state.aheadMs) };
const authorities = await openServerCredentials({
  directory,
  nodeName: 'n1',
  hostnames: () => [`at-${state.aheadMs}`],
  addresses: () => [],
  clock,
  files: diskCredentialFiles(),
  log: collectLogs(clock).logger,
});
await authorities.maintainKubeconfig({
  path: join(directory, 'admin.kubeconfig'),
  server: 'https://127.0.0.1:1',
  user: 'admin',
  credentials: 'certificate',
});
process.stdout.write('made\n');
for (;;) {
  // The clock alternates between two times, so that the authorities are created again as well.
  state.aheadMs = state.aheadMs === 0 ? 4_000 * 86_400_000 : 0;
  await authorities.renewAll();
}
