import { describeError, KubelingError, ProcessTable, readLockOwner } from '../lib/index.ts';
import { defaultDataDirectory, findHome, type Home, readUpState } from './home.ts';

const defaultPort = 10_250;

/**
 * Where the kubelet answers on loopback. Whoever names a data directory means the kubelet of that one, and is not sent
 * to another that happens to answer at the usual place.
 */
export async function kubeletPort(dataDir: string | undefined): Promise<number> {
  const home = await findHome(dataDir ?? defaultDataDirectory);
  const port = home === undefined ? undefined : (await readUpState(home))?.port;
  if (dataDir === undefined) return port ?? defaultPort;
  if (home === undefined) throw noKubelet(dataDir, 'there is no such directory');
  if (!(await isUp(home))) throw noKubelet(dataDir, 'no kubeling is up there');
  if (port === undefined) throw noKubelet(dataDir, 'it does not answer yet, or is not yours to ask');
  return port;
}

async function isUp({ dataDir, lockFile }: Home): Promise<boolean> {
  const owner = await readLockOwner(lockFile).catch((error) => {
    throw noKubelet(dataDir, describeError(error));
  });
  return owner !== undefined && (await new ProcessTable().isAlive(owner));
}

function noKubelet(dataDir: string, why: string): KubelingError {
  const message = `Cannot ask the kubelet of the data directory ${dataDir}: ${why}`;
  return new KubelingError('KUBELET_SILENT', message);
}
