import type { NamespaceOption, UserNamespace } from '../../cri/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';

/** The namespaces of a pod's sandbox; its containers repeat them. */
export function podNamespaces(
  { spec }: Pod,
  userNamespace?: MessageInit<UserNamespace>,
): MessageInit<NamespaceOption> {
  return {
    network: spec.hostNetwork === true ? 'NODE' : 'POD',
    ipc: spec.hostIPC === true ? 'NODE' : 'POD',
    pid: spec.hostPID === true ? 'NODE' : spec.shareProcessNamespace === true ? 'POD' : 'CONTAINER',
    usernsOptions: userNamespace,
  };
}

/** A container may see the processes of another one that it is to debug. */
export function containerNamespaces(
  namespaces: MessageInit<NamespaceOption>,
  targetId: string | undefined,
): MessageInit<NamespaceOption> {
  if (targetId === undefined || namespaces.pid !== 'CONTAINER') return namespaces;
  return { ...namespaces, pid: 'TARGET', targetId };
}
