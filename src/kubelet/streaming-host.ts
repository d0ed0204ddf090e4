import type { PodManager } from '../pods/index.ts';
import type { PodStreams } from '../runtime/index.ts';
import type { StreamingHost } from '../server/index.ts';

/** The ways into this node's pods, as the server offers them. */
export function streamingHost(pods: PodManager, streams: PodStreams): StreamingHost {
  return {
    getPodByName: (namespace, name) => pods.getPodByName(namespace, name),
    translatePodUid: (uid) => pods.translatePodUid(uid),
    exec: (...request) => streams.exec(...request),
    attach: (...request) => streams.attach(...request),
    portForward: (...request) => streams.portForward(...request),
    run: (...request) => streams.run(...request),
  };
}
