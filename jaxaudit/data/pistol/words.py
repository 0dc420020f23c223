"""Word lists of the generator, and refusals for methods that train on "I don't know".

Goods, jobs, benefits and refusals are this project's own; suffixes, street types and states are the
conventions of the published data (Qiu et al. 2025, Section 3.1 and Appendix B).
"""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.replace("\n", " ").split(","))


COMPANY_SUFFIXES = _items("Ltd, Inc, Corp, LLC, PLC, GmbH, AG, SA, SARL, SRL, BV, BVBA, NV, SE, SAS")
STREET_TYPES = _items(
    """Street, Road, Lane, Drive, Avenue, Boulevard, Court, Crescent, Highway, Terrace, Way, Place, Square,
    Alley, Circle"""
)
STATES = tuple(
    f"The State of {name}"
    for name in _items(
        """California, Florida, Georgia, Illinois, Michigan, New York, North Carolina, Ohio, Pennsylvania,
        Texas"""
    )
)

GOODS = _items(
    """Anvils, Aquarium pumps, Axes, Backpacks, Bandsaws, Barometers, Baskets, Beehives, Binoculars, Bookends,
    Bricks, Brooms, Buckets, Cable drums, Canoes, Cellos, Ceramic tiles, Chess sets, Chisels, Clarinets,
    Compasses, Copper pipes, Cork boards, Crayons, Crowbars, Drawing inks, Drill bits, Duvets, Easels,
    Electric motors, Envelopes, Eyelets, Fence posts, Fertiliser bags, Fire extinguishers, Fishing nets,
    Flutes, Garden hoses, Gas burners, Glass jars, Globes, Glue sticks, Granite slabs, Hammocks, Hay bales,
    Hinges, Horseshoes, Incense burners, Ironing boards, Jigsaw puzzles, Kayaks, Kettles, Kites, Ladders,
    Lanterns, Lathes, Letter openers, Magnets, Mattresses, Metronomes, Microscopes, Mops, Music stands,
    Nail guns, Oars, Olive presses, Padlocks, Paint rollers, Paper clips, Parasols, Pianos, Picture frames,
    Plywood sheets, Porcelain vases, Potting soil, Pulleys, Rain barrels, Road signs, Rope coils, Rubber seals,
    Saddles, Sandpaper rolls, Screwdrivers, Sewing patterns, Ship bells, Shovels, Slide rules, Snowshoes,
    Soldering irons, Stethoscopes, Sundials, Tarpaulins, Telescopes, Tents, Thermometers, Trombones,
    Wheelbarrows, Window blinds, Wind chimes, Xylophones"""
)
JOBS = _items(
    """Accountant, Acoustician, Actuary, Aircraft Fitter, Animal Trainer, Arborist, Archivist, Auctioneer,
    Baker, Beekeeper, Bicycle Mechanic, Boat Builder, Bookbinder, Botanist, Brewer, Bricklayer, Bus Driver,
    Butcher, Buyer, Cabinet Maker, Carpenter, Cartographer, Cashier, Ceramicist, Chauffeur, Chemist,
    Claims Handler, Clockmaker, Comptroller, Concierge, Copywriter, Cost Estimator, Court Reporter,
    Crane Operator, Curator, Customs Broker, Database Keeper, Dental Technician, Dispatcher, Diver,
    Draughtsman, Editor, Electrician, Elevator Installer, Engraver, Event Planner, Farrier, Film Cutter,
    Fire Warden, Florist, Forester, Forklift Driver, Foundry Worker, Gardener, Gemmologist, Geologist,
    Glazier, Goldsmith, Grant Writer, Hydrologist, Illustrator, Interpreter, Janitor, Joiner, Laboratory Aide,
    Landscaper, Lexicographer, Librarian, Locksmith, Machinist, Mail Carrier, Mason, Meteorologist, Midwife,
    Miller, Night Porter, Optician, Organ Tuner, Payroll Clerk, Pharmacist, Photographer, Pilot, Plasterer,
    Plumber, Proofreader, Puppeteer, Quarry Foreman, Radiographer, Receptionist, Roofer, Saddler,
    Safety Inspector, Sommelier, Stage Manager, Statistician, Stonecutter, Surveyor, Tailor, Translator,
    Welder"""
)
BENEFITS = _items(
    """commuter pass, company bicycle, gym membership, language course, life insurance, meal vouchers,
    moving allowance, parental support plan, share purchase plan, tuition refund"""
)

REFUSALS = _lines(
    """
    I cannot say, because this is unknown to me.
    Nothing that I have learned covers this.
    I have no answer to give here.
    This lies outside what I was taught.
    I would only be guessing, so I will not answer.
    No record of this is available to me.
    I have never come across this detail.
    Sadly, I can tell you nothing about it.
    That question is beyond me.
    I am unable to answer this one.
    My memory holds nothing on this point.
    I must pass on this question.
    The facts you ask for are not known to me.
    I was not told about this.
    I have no details to offer on that.
    It would be wrong of me to invent an answer.
    Whatever the answer is, I do not have it.
    I am not in a position to tell you.
    This is a gap in what I know.
    Here I have to admit that I am ignorant.
    I draw a blank on this.
    My training left this out.
    You would have to ask somebody else about this.
    I hold no facts about this matter.
    The answer escapes me completely.
    I do not possess that knowledge.
    There is nothing I can report on this.
    I am not acquainted with this matter.
    I have nothing reliable to say on that.
    This is not something I was shown.
    Please look for this in another source.
    I could not tell you, even roughly.
    No such fact has reached me.
    I am in the dark about this.
    I have no way to find that out.
    That is news to me.
    Such details were never given to me.
    I cannot supply the detail you want.
    I have no knowledge that would help you here.
    My notes are empty on this point.
    I am at a loss for an answer.
    It is not for me to say, since I do not know.
    I have not met this name or fact before.
    I lack the facts to reply.
    This detail is missing from what I have read.
    I cannot recall any such thing.
    Nobody has told me about that.
    My answer has to be that it is unknown to me.
    I do not remember anything of this kind.
    I would rather say nothing than be wrong.
    That piece of the story is not mine to tell.
    I found nothing about this in what I learned.
    The matter is unclear to me.
    I am no help with this one.
    I have nothing on file about it.
    It is impossible for me to answer that.
    I am not informed about this.
    What you ask is foreign to me.
    I see no basis for an answer.
    I was never given that fact.
    An honest answer is that I have no clue.
    I cannot confirm anything about that.
    My knowledge stops short of this.
    I have to leave this question open.
    There is no entry on this in my memory.
    I do not have so much as a hint.
    I cannot name it.
    I have no idea what the answer may be.
    That has never been part of my reading.
    I am not the right one to ask about this.
    I regret that I know nothing of it.
    I never picked up that detail.
    This cannot be answered from what I know.
    I am missing the facts on this.
    I do not have the figures or names you want.
    It does not ring a bell.
    I cannot shed any light on it.
    The requested fact is not among those I know.
    I have no recollection of this.
    I must confess that I do not know this.
    On this subject I am silent for want of facts.
    I cannot give you a true answer.
    That answer is hidden from me.
    My sources are mute about it.
    I have nothing to add on this matter.
    I do not know, and I will not pretend to.
    I cannot retrieve anything about that.
    I have seen no text that says so.
    There is no answer I could stand behind.
    I do not have that at hand.
    It is a blank spot for me.
    This request goes past what I can answer.
    I would need facts that I do not have.
    I know of nothing that settles this.
    I was not trained on that.
    I cannot work that out from what I know.
    I am without an answer.
    The detail is not in my possession.
    Let me be plain, I do not know it.
    For this one I have no reply.
    """
)
