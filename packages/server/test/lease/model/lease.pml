/*
 * The lease protocol for one sandbox and two instances, checked in every interleaving (see docs/explanation/ownership.md).
 *
 * Every read, with what follows from it, is one step, and so is every swap. A swap may be answered, or be ambiguous: applied,
 * not applied, or applied at any later moment. Time is one bit for each id, valid: less than 0.75 ttl has passed since its
 * last good renewal. It may lapse at any moment, and a record is swapped to dead only after it has: that is all that the
 * lengths of time are for.
 *
 * With KEPT it is a sandbox that its provider keeps: there is one copy, which no epoch guards and which lives on whatever
 * becomes of its owner. An owner that was overtaken lets go of it; one that destroys the sandbox removes it afterwards.
 *
 * With PROMOTIONS an owner may also give the sandbox the state of a fork, the winner, which ends afterwards. That swap writes the
 * pointer and the next epoch at once.
 *
 * Each BUG_ switch plants a mistake that must be found.
 */
#ifndef CHECKPOINTS
#define CHECKPOINTS 2
#endif
#ifndef VERSIONS
#define VERSIONS 6               /* of the head; the first one is nobody's */
#endif
#ifndef REBIRTHS
#define REBIRTHS 1               /* crashes and fencings, after which an instance goes on under another id */
#endif
#ifndef LATE
#define LATE 1                   /* swaps that arrive late */
#endif
#define INSTANCES 2
#define NOBODY 255
#define MY_ID (me + INSTANCES * life)

#ifdef BUG_PLAIN_PUT
#define CONDITION (kind == committing || version == expected)
#else
#define CONDITION (version == expected)
#endif
#ifdef BUG_WALL_CLOCK
#define STOOD_STILL(id) true
#else
#define STOOD_STILL(id) (!valid[id])
#endif
#ifdef BUG_NO_TOMBSTONE
#define DECLARE_DEAD(id) skip
#define IS_DEAD(id) (!valid[id])
#else
#define DECLARE_DEAD(id) dead[id] = true
#define IS_DEAD(id) dead[id]
#endif
#ifdef BUG_COLLECTION_REGARDLESS_OF_EPOCH
#define MAY_BE_REMOVED(object) true
#else
#define MAY_BE_REMOVED(object) (made_in[object] < c_epoch)
#endif
#ifdef BUG_EPOCH_NOT_BUMPED
#define NEXT_EPOCH epoch
#else
#define NEXT_EPOCH epoch + 1
#endif
#ifdef BUG_NO_FREEZE
#define MAY_RUN true
#else
#define MAY_RUN valid[MY_ID]
#endif

#ifdef KEPT
#define NO_COLLECTION
#endif
#ifdef BUG_LOST_IS_REMOVED
#define LOSE_COPY() if :: owned -> kept = false :: else fi
#else
#define LOSE_COPY() skip
#endif

/*
 * The instances differ by nothing but their numbers. So what the first swap that is applied leads to is the same for both, and only
 * instance 0 applies it: that halves the states. Instance 1 may try before, at the same time and too late.
 */
#define MAY_BE_FIRST(id) (version > 1 || (id) % INSTANCES == 0)

mtype = { claiming, asking, committing, promoting, releasing, destroying };

/* The head. The writer of each version stands for the nonce and the history. */
byte version = 1;
byte epoch = 1;
byte owner = NOBODY;
byte want = NOBODY;
byte pointer = 0;
bool deleted = false;
byte writer[VERSIONS + 2];

/* The only copy, at the provider. */
bool kept = true;
#define KEPT_UNLESS_DELETED assert(kept || deleted)

/* The fork that may be promoted, and whether its state is the sandbox's or was. */
bool winner = true;
bool promoted = false;

/* Liveness, by id. An id without the sandbox has nothing to lose, so that its bit is down. */
bool dead[INSTANCES * (REBIRTHS + 1)];
bool valid[INSTANCES * (REBIRTHS + 1)];

/* Checkpoints, numbered from 1. */
byte made = 0;
byte parent[CHECKPOINTS + 1];
byte made_in[CHECKPOINTS + 1];
byte references[CHECKPOINTS + 1];
bool in_chain[CHECKPOINTS + 1];
byte removed = 0;
byte committer[VERSIONS + 2];    /* by epoch */

/* A swap that may still arrive. */
byte rebirths = 0;
byte lates = 0;
mtype late_kind = 0;
byte late_expected = 0;
byte late_writer = 0;
byte late_fresh = 0;

/* A swap takes effect. What it writes follows from the head that it replaces, and from who does it. */
inline apply(what, by, as_epoch, checkpoint) {
  assert(!deleted);                                                            /* a tombstone stays */
  version++;
  writer[version] = by;
  if
  :: what == claiming -> epoch = NEXT_EPOCH; owner = by; want = NOBODY
  :: what == asking -> want = by
  :: what == destroying -> epoch = epoch + 1; owner = NOBODY; want = NOBODY; pointer = 0; deleted = true
#ifdef KEPT
  :: what == releasing -> assert(epoch == as_epoch); owner = NOBODY; want = NOBODY
#else
  :: what == committing || what == releasing ->
     assert(parent[checkpoint] == pointer);                                    /* no update is lost */
     epoch = as_epoch;
     assert(committer[epoch] == NOBODY || committer[epoch] == by);             /* one committer for each epoch */
     committer[epoch] = by;
     pointer = checkpoint;
     in_chain[checkpoint] = true;
     owner = by;
     if :: what == releasing -> owner = NOBODY; want = NOBODY :: else fi
#endif
#ifdef PROMOTIONS
  :: what == promoting ->
     assert(parent[checkpoint] == pointer && epoch == as_epoch);
     epoch = as_epoch + 1;
     assert(committer[epoch] == NOBODY);                                       /* nobody has committed at that epoch */
     committer[epoch] = by;
     pointer = checkpoint;
     in_chain[checkpoint] = true;
     promoted = true
#endif
  fi;
  assert((references[pointer] & removed) == 0)                                 /* the head references what is there */
}

inline forget() {
  valid[MY_ID] = false; owned = false; my_epoch = 0; base = 0
}

inline rest() {
  kind = 0; expected = 0; unclear = false; fresh = 0
}

/* The sender learns that its swap was applied. */
inline applied() {
  if
  :: kind == claiming && owner == MY_ID -> owned = true; my_epoch = epoch; base = pointer; valid[MY_ID] = !dead[MY_ID]
#ifdef KEPT
  :: kind == releasing -> forget()
  :: kind == destroying -> forget(); kept = false; KEPT_UNLESS_DELETED
#else
  :: kind == committing || kind == releasing ->
     assert(in_chain[fresh]);                                                  /* acknowledged means in the chain */
     base = fresh;
#ifndef NO_COLLECTION
     c_epoch = my_epoch; c_pointer = fresh;
#endif
     if :: kind == releasing -> forget() :: else fi
  :: kind == destroying -> forget()
#endif
#ifdef PROMOTIONS
  :: kind == promoting -> base = fresh; my_epoch = my_epoch + 1; winner = false; assert(promoted || winner)
#endif
  :: else
  fi;
  rest()
}

/* The sender learns that its swap was not and never will be applied; an owner looks at the head again. */
inline not_applied() {
  if
  :: kind == claiming || kind == asking -> rest()
  :: else -> expected = 0; unclear = false
  fi
}

#ifdef BUG_AMBIGUOUS_AS_SUCCESS
#define AMBIGUOUS applied()
#else
#define AMBIGUOUS unclear = true
#endif

inline swap() {
  if
  :: version < VERSIONS && CONDITION ->
     if
     :: MAY_BE_FIRST(me) -> apply(kind, MY_ID, my_epoch, fresh); if :: true -> applied() :: true -> AMBIGUOUS fi
     :: true -> AMBIGUOUS
     :: lates < LATE && late_kind == 0 ->
        lates++; late_kind = kind; late_expected = expected; late_writer = MY_ID; late_fresh = fresh;
        AMBIGUOUS
     fi
  :: else -> if :: true -> not_applied() :: true -> AMBIGUOUS fi
  fi
}

#define APPLIED (version > expected && writer[expected + 1] == MY_ID)

inline begin_life() {
  forget(); rest(); c_epoch = 0; c_pointer = 0; life++; rebirths++
}

proctype Instance(byte me) {
  byte life = 0;
  mtype kind = 0;                       /* the operation under way, and the version that it goes on top of */
  byte expected = 0, fresh = 0;
  bool unclear = false;
  bool owned = false;
  byte my_epoch = 0, base = 0;
  byte c_epoch = 0, c_pointer = 0;      /* the last commit, for the collection after it */
  byte object = 0;

  do
  :: version >= VERSIONS -> break

  /* The process is killed at any point, and another one starts. */
  :: d_step { rebirths < REBIRTHS -> begin_life() }

  /* A renewal: it is confirmed, or finds out that this instance was declared dead. Or none is confirmed in time. */
  :: d_step { owned && !dead[MY_ID] && !valid[MY_ID] -> valid[MY_ID] = true }
  :: d_step { dead[MY_ID] && rebirths < REBIRTHS -> LOSE_COPY(); begin_life(); KEPT_UNLESS_DELETED }
  :: d_step { owned && valid[MY_ID] -> valid[MY_ID] = false }

  /* The owner's record stood still for 1.5 ttl. */
  :: atomic { owner != NOBODY && owner != MY_ID && !dead[owner] && STOOD_STILL(owner) -> DECLARE_DEAD(owner) }

  /* Claim what is nobody's, one's own whose answer was lost, or of a dead owner. */
  :: atomic {
       kind == 0 && !owned && !deleted && (owner == NOBODY || owner == MY_ID || IS_DEAD(owner)) ->
       kind = claiming; expected = version
     }

  /* Ask a living owner. */
  :: atomic {
       kind == 0 && !owned && owner != NOBODY && owner != MY_ID && want == NOBODY -> kind = asking; expected = version
     }

  /* Commit, release with a commit, destroy. */
#ifdef KEPT
  :: atomic { kind == 0 && owned -> kind = releasing }
#else
  :: atomic {
       kind == 0 && owned && made < CHECKPOINTS ->
       made++; fresh = made; parent[fresh] = base; made_in[fresh] = my_epoch;
       if :: references[fresh] = (1 << fresh) | references[base] :: references[fresh] = (1 << fresh) fi;
       if :: kind = committing :: kind = releasing fi
     }
#endif
#ifdef PROMOTIONS
  :: atomic {
       kind == 0 && owned && winner && made < CHECKPOINTS ->
       made++; fresh = made; parent[fresh] = base; made_in[fresh] = my_epoch; references[fresh] = 1 << fresh;
       kind = promoting;
#ifdef BUG_WINNER_ENDS_FIRST
       winner = false; assert(promoted || winner)
#endif
     }
#endif
#ifdef BUG_REMOVED_BEFORE_TOMBSTONE
  :: atomic { kind == 0 && owned -> kind = destroying; kept = false }
#else
  :: atomic { kind == 0 && owned -> kind = destroying }
#endif

  /* An owner's move goes on top of the head as it is, when that is its own but for the request in it. */
  :: atomic {
       kind != 0 && kind != claiming && kind != asking && expected == 0 ->
       if
       :: owner == MY_ID && epoch == my_epoch && pointer == base && !deleted -> expected = version
       :: else -> LOSE_COPY(); KEPT_UNLESS_DELETED; forget(); rest()
       fi
     }

  /* Send it, and look what became of it, until that is known. */
#ifdef BUG_CHECK_THEN_PUT
  :: atomic { (kind == committing || kind == releasing) && expected != 0 && version == expected -> unclear = true }
  :: atomic {
       (kind == committing || kind == releasing) && unclear && version < VERSIONS ->
       apply(kind, MY_ID, my_epoch, fresh); applied()
     }
  :: atomic { kind != 0 && kind != committing && kind != releasing && expected != 0 && !unclear -> swap() }
#else
  :: atomic { kind != 0 && expected != 0 && !unclear -> swap() }
#endif
  :: atomic {
       unclear ->
       if
       :: APPLIED -> applied()
       :: !APPLIED && version != expected -> not_applied()
       :: version == expected -> unclear = false                               /* the same again */
       fi
     }

  /* Collection after a commit, however late, and whoever owns the sandbox by then. */
  :: d_step {
       c_epoch > 0 ->
       object = 1;
       do
       :: object <= made ->
          if
          :: MAY_BE_REMOVED(object) && !(references[c_pointer] & (1 << object)) -> removed = removed | (1 << object)
          :: else
          fi;
          object++
       :: else -> break
       od;
       object = 0; c_epoch = 0; c_pointer = 0;
       assert((references[pointer] & removed) == 0)
     }

  /* The sandbox lets itself be seen; not while it is saved or destroyed. */
  :: d_step { kind == 0 && owned && MAY_RUN -> assert(owner == MY_ID && epoch == my_epoch) }
  od
}

/* Delivers a late swap, or loses it for good. */
active proctype Network() {
  do
  :: version >= VERSIONS -> break
  :: atomic {
       late_kind != 0 ->
       if
       :: version == late_expected && version < VERSIONS && MAY_BE_FIRST(late_writer) -> apply(late_kind, late_writer, epoch, late_fresh)
       :: true
       fi;
       late_kind = 0; late_expected = 0; late_writer = 0; late_fresh = 0
     }
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. VERSIONS + 1) { committer[i] = NOBODY; writer[i] = NOBODY }
    i = 0;
    run Instance(0); run Instance(1)
  }
}
