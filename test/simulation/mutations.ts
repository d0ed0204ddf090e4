import type { Mutation } from './kubelet-life.ts';

/** Bugs that kubelets have had, put in from outside: the simulation must find each. */
export const mutations: Readonly<Record<string, Mutation>> = {
  /** A worker goes by what was seen before its last sync ended, and does again what is done. */
  'an old observation is taken for the truth': ({ pleg: { cache } }) => {
    cache.getNewerThan = async (uid) => cache.get(uid);
  },

  /** Of an edited static pod only the new one is told, and the old one stays. */
  'REMOVE is forgotten when ADD follows': ({ config }) => {
    const take = config.takeUpdate.bind(config);
    let held: ReturnType<typeof take>;
    config.takeUpdate = () => {
      const update = held ?? take();
      held = undefined;
      if (update?.op !== 'REMOVE') return update;
      held = take();
      return held?.op === 'ADD' ? config.takeUpdate() : update;
    };
  },

  /** A pod that ran its time runs it again with each kubelet. */
  'how a pod has ended is forgotten with the kubelet': ({ workers }) => {
    const update = workers.updatePod.bind(workers);
    workers.updatePod = ({ pod, ...rest }) =>
      update(pod === undefined ? rest : { ...rest, pod: { ...pod, status: { phase: 'Pending' } } });
  },
};
