import type { KubeletSettings } from '../kubelet/index.ts';
import { ManifestReader } from '../sources/index.ts';

const nobodysPod = `
apiVersion: v1
kind: Pod
metadata:
  name: nobody
spec:
  containers:
    - name: main
      image: none
      command: [sh, -c, "true"]
`;

/** What reads manifests is loaded by reading one that nobody wants, so that the first pod does not have to wait for it. */
export async function warmUp(
  settings: Pick<KubeletSettings, 'staticPodPath' | 'nodeName' | 'isGateEnabled'>,
): Promise<void> {
  const { staticPodPath, nodeName, isGateEnabled: enabled } = settings;
  if (staticPodPath === '') return;
  const reader = new ManifestReader({ enabled, apiReferences: 'refused' });
  await reader.read(Buffer.from(nobodysPod), { source: 'file', path: staticPodPath, nodeName });
}
